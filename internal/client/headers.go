package client

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reservedHeaders are set by the transport, or by Credentials.
var reservedHeaders = []string{"authorization", "connection", "content-length", "content-type", "grpc-timeout", "host", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"}

// headerPairs are headers as gRPC takes them: names and values in turn, names in lower case.
func headerPairs(headers map[string]string) ([]string, error) {
	bad := func(format string, a ...any) ([]string, error) {
		return nil, &ConfigError{Attribute: "headers", Problem: fmt.Sprintf(format, a...)}
	}
	var pairs, names []string
	for _, given := range slices.Sorted(maps.Keys(headers)) {
		name := strings.ToLower(given)
		switch {
		case !isHeaderName(name): // not repeated: whoever swaps name and value would see the secret
			return bad("a name of a header has other characters than letters, digits, '-', '_' and '.'")
		case name == "authorization":
			return bad("authorization is what token, token_file and oidc send; use one of them")
		case slices.Contains(reservedHeaders, name), strings.HasPrefix(name, "grpc-"), strings.HasSuffix(name, "-bin"):
			return bad("the header %s belongs to the protocol and cannot be set", name)
		case slices.Contains(names, name):
			return bad("the header %s is there twice, in different letter case", name)
		case strings.ContainsFunc(headers[given], func(r rune) bool { return r < ' ' || r > '~' }):
			return bad("the value of the header %s has line ends or other characters that no header can have", name)
		}
		pairs, names = append(pairs, name, headers[given]), append(names, name)
	}
	return pairs, nil
}

func isHeaderName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}
