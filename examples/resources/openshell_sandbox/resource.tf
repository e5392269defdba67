resource "openshell_sandbox" "agent" {
  name      = "agent"
  workspace = "default"
  image     = "nvcr.io/nvidia/base/ubuntu:24.04"
  command   = ["sleep", "infinity"]

  environment = {
    LOG_FORMAT = "json"
  }

  resources = {
    cpu    = "500m"
    memory = "512Mi"
  }

  labels = {
    team = "research"
  }

  timeouts = {
    create = "10m"
    delete = "10m"
  }
}
