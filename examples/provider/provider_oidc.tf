# A program of its own at the issuer, as in CI. The secret is in the environment variable OPENSHELL_OIDC_CLIENT_SECRET.
provider "openshell" {
  endpoint = "https://gateway.example.com:17670"

  oidc = {
    issuer    = "https://issuer.example.com/realms/openshell"
    client_id = "terraform"
    audience  = "openshell-cli"
    scopes    = ["sandbox:read", "sandbox:write", "workspace:read"]
  }
}
