# Something else renews the token in the file, such as Kubernetes or Vault Agent.
provider "openshell" {
  endpoint   = "https://gateway.example.com:17670"
  token_file = "/var/run/secrets/openshell/token"
}
