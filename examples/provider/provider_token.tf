variable "openshell_token" {
  description = "Bearer token. Ephemeral: it reaches neither a plan nor the state."
  type        = string
  ephemeral   = true
}

provider "openshell" {
  endpoint = "https://gateway.example.com:17670"
  token    = var.openshell_token
}
