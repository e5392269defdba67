# What this provider made, also if no state knows of it
data "openshell_sandboxes" "made_by_terraform" {
  label_selector = "openshell-iac/managed-by=terraform"
}

output "made_by_terraform" {
  value = {
    for sandbox in data.openshell_sandboxes.made_by_terraform.sandboxes :
    sandbox.id => "${sandbox.workspace}/${sandbox.name}"
  }
}
