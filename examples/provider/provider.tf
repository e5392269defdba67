terraform {
  required_providers {
    openshell = {
      source = "openshell-iac/openshell"
    }
  }
}

# A gateway that the openshell command line of this machine knows.
provider "openshell" {
  gateway = "prod"
}
