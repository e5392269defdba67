import {
  to = openshell_sandbox.agent
  identity = {
    workspace = "default"
    name      = "agent"
    id        = "0b6c1f52-7d0c-4a53-9a8c-2f8f2b6f4f11"
  }
}
