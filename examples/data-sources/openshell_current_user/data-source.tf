data "openshell_current_user" "this" {}

resource "openshell_sandbox" "agent" {
  name = "agent"

  annotations = {
    "example.com/owner" = data.openshell_current_user.this.subject
  }
}
