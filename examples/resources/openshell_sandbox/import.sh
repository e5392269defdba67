# By name, in the provider's workspace
terraform import openshell_sandbox.agent agent

# By workspace and name
terraform import openshell_sandbox.agent default/agent

# With the id, with or without the workspace: refused when the name means another sandbox by now
terraform import openshell_sandbox.agent agent@0b6c1f52-7d0c-4a53-9a8c-2f8f2b6f4f11
terraform import openshell_sandbox.agent default/agent@0b6c1f52-7d0c-4a53-9a8c-2f8f2b6f4f11
