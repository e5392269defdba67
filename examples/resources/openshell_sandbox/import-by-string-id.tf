import {
  to = openshell_sandbox.agent
  id = "default/agent"
}
