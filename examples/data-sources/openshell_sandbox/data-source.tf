data "openshell_sandbox" "agent" {
  workspace = "default"
  name      = "agent"
}

output "agent_phase" {
  value = data.openshell_sandbox.agent.phase
}
