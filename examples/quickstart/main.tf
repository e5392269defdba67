terraform {
  required_providers {
    openshell = {
      source = "openshell-iac/openshell"
    }
  }
}

variable "endpoint" {
  description = "URL of the gateway. The default is where openshell-reference-gateway listens."
  type        = string
  default     = "http://127.0.0.1:17670"
}

provider "openshell" {
  endpoint = var.endpoint
}

resource "openshell_sandbox" "web" {
  name = "web"
}

output "sandbox_id" {
  description = "The id that every later change and the destroy are bound to."
  value       = openshell_sandbox.web.id
}
