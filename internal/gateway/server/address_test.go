package server

import (
	"net"
	"testing"
)

// A host that no client can connect to is not handed out.
func TestHost(t *testing.T) {
	for _, tc := range []struct {
		address net.Addr
		want    string
	}{
		{&net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 17670}, "127.0.0.1"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 17670}, "2001:db8::1"},
		{&net.TCPAddr{IP: net.IPv4zero, Port: 17670}, ""},
		{&net.TCPAddr{IP: net.IPv6unspecified, Port: 17670}, ""},
		{&net.TCPAddr{Port: 17670}, ""},
		{&net.UnixAddr{Name: "socket"}, ""},
	} {
		s := New(Config{})
		s.ListensOn(tc.address)
		if got := s.host(); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.address, got, tc.want)
		}
	}
}

func TestServiceURLs(t *testing.T) {
	for _, tc := range []struct {
		ip     string
		port   int
		tls    bool
		domain string
		want   string
	}{
		{"127.0.0.1", 17670, false, "openshell.localhost", "http://default--web--api.openshell.localhost:17670/"},
		{"127.0.0.1", 17670, true, "openshell.localhost", "http://default--web--api.openshell.localhost:17670/"},
		{"192.0.2.1", 17670, true, "apps.example.com", "https://default--web--api.apps.example.com:17670/"},
		{"192.0.2.1", 443, true, "apps.example.com", "https://default--web--api.apps.example.com/"},
		{"192.0.2.1", 443, false, "apps.example.com", "http://default--web--api.apps.example.com:443/"},
		{"::", 80, false, "apps.example.com", "http://default--web--api.apps.example.com/"},
		{"127.0.0.1", 17670, false, "", ""},
	} {
		s := New(Config{TLS: tc.tls, ServiceDomain: tc.domain})
		s.ListensOn(&net.TCPAddr{IP: net.ParseIP(tc.ip), Port: tc.port})
		if got := s.serviceURL("default", "web", "api"); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
	s := New(Config{ServiceDomain: DefaultServiceDomain})
	s.ListensOn(&net.UnixAddr{Name: "socket"})
	if got := s.serviceURL("default", "web", "api"); got != "" {
		t.Errorf("on no TCP address: %s", got)
	}
}
