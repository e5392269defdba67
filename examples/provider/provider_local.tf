# In plaintext, for a gateway on this machine.
provider "openshell" {
  endpoint = "http://127.0.0.1:17670"
}
