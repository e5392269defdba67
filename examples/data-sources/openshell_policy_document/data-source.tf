data "openshell_policy_document" "agent" {
  filesystem_policy = {
    include_workdir = true
    read_only       = ["/usr", "/lib", "/etc"]
    read_write      = ["/tmp"]
  }

  network_policies = {
    github = {
      binaries = [{ path = "/usr/bin/gh" }]
      endpoints = [{
        host        = "api.github.com"
        port        = 443
        protocol    = "rest"
        enforcement = "enforce"
        rules = [
          { allow = { method = "GET", path = "/**" } },
          { allow = { method = "POST", path = "/repos/*/*/issues" } },
        ]
      }]
    }
  }
}

resource "openshell_sandbox" "agent" {
  name   = "agent"
  policy = data.openshell_policy_document.agent.json
}
