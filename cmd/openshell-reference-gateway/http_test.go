package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// freePorts are so many different ones that nobody listened on just now.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	ports := make([]string, n)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }() // at the end: a port given back could come again
		if _, ports[i], err = net.SplitHostPort(listener.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	return ports
}

func fetch(t *testing.T, url string) (status int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(call(t), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// Health and metrics have ports of their own, as long as the gateway is there.
func TestHealthAndMetricsPorts(t *testing.T) {
	ports := freePorts(t, 2)
	health, metrics := ports[0], ports[1]
	_, stop := started(t, "--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--health-port", health, "--metrics-port", metrics)
	for url, want := range map[string]string{
		"http://127.0.0.1:" + health + "/healthz":  "ok\n",
		"http://127.0.0.1:" + health + "/readyz":   "ready\n",
		"http://127.0.0.1:" + metrics + "/metrics": `openshell_gateway_build_info{version="0.1.5+reference.dev"} 1`,
	} {
		if status, body, err := fetch(t, url); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q, %v", url, status, body, err)
		}
	}
	if status, _, _ := fetch(t, "http://127.0.0.1:"+health+"/metrics"); status != http.StatusNotFound {
		t.Errorf("metrics at the port for health: %d", status)
	}
	said := refused(t, exitFailed, "--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--health-port", health)
	if !strings.Contains(said, "--health-port "+health) {
		t.Errorf("it says %q", said)
	}
	said = refused(t, exitFailed, "--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--metrics-port", metrics)
	if !strings.Contains(said, "--metrics-port "+metrics) {
		t.Errorf("it says %q", said)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, port := range []string{health, metrics} {
		if _, _, err := fetch(t, "http://127.0.0.1:"+port+"/healthz"); err == nil {
			t.Errorf("port %s is still served", port)
		}
	}
}
