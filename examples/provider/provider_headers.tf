variable "access_secret" {
  description = "Secret of a service token of Cloudflare Access."
  type        = string
  ephemeral   = true
}

# The proxy in front of the gateway wants headers; the gateway wants a token besides.
provider "openshell" {
  endpoint   = "https://gateway.example.com"
  token_file = "/var/run/secrets/openshell/token"

  headers = {
    CF-Access-Client-Id     = "terraform.access"
    CF-Access-Client-Secret = var.access_secret
  }
}
