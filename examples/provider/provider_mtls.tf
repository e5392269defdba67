provider "openshell" {
  endpoint = "https://gateway.example.com:17670"

  tls = {
    ca_cert_file     = "${path.module}/ca.crt"
    client_cert_file = "${path.module}/tls.crt"
    client_key_file  = "${path.module}/tls.key"
  }
}
