resource "openshell_sandbox" "agent" {
  name      = "agent"
  workspace = "default"
  image     = "nvcr.io/nvidia/base/ubuntu:24.04"
  command   = ["sleep", "infinity"]

  environment = {
    LOG_FORMAT = "json"
  }

  labels = {
    team = "research"
  }

  timeouts = {
    create = "10m"
    delete = "10m"
  }
}
