data "openshell_gateway" "this" {}

check "conditional_delete" {
  assert {
    condition     = data.openshell_gateway.this.conditional_delete
    error_message = "This gateway cannot delete by id: destroy will refuse and keep the state."
  }
}
