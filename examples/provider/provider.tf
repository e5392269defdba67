terraform {
  required_providers {
    openshell = {
      source = "openshell-iac/openshell"
    }
  }
}

provider "openshell" {
  endpoint  = "https://gateway.example.com:17670"
  workspace = "default"

  # The token is better given as OPENSHELL_TOKEN than written here.

  tls = {
    ca_cert_file = "${path.module}/gateway-ca.pem"
  }
}
