package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// pageContent is what a page token carries: where the page before ended, and what list it belongs to. Clients take it for
// opaque.
type pageContent struct {
	Binding   []byte `json:"b"`
	CreatedAt int64  `json:"t"` // microseconds since 1970
	Name      string `json:"n"`
	Workspace string `json:"w"`
	ID        string `json:"i"`
}

// bind stands for a list: its call and every parameter but the page size.
func bind(parts ...string) []byte {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s,", len(part), part) // the length keeps ("a", "bc") and ("ab", "c") apart
	}
	return hash.Sum(nil)[:12]
}

func pageToken(last store.Sandbox, binding []byte) string {
	content, err := json.Marshal(pageContent{
		Binding: binding, CreatedAt: last.CreatedAt.UnixMicro(), Name: last.Name, Workspace: last.Workspace, ID: last.ID,
	})
	if err != nil { // strings and numbers only
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(content)
}

// errPageToken carries no details upstream either.
var errPageToken = status.Error(codes.InvalidArgument, "page_token is not one that this list has returned for the same parameters")

func readPageToken(token string, binding []byte) (*store.Cursor, error) {
	if token == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, errPageToken
	}
	var content pageContent
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil || !bytes.Equal(content.Binding, binding) {
		return nil, errPageToken
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errPageToken
	}
	return &store.Cursor{
		CreatedAt: time.UnixMicro(content.CreatedAt), Name: content.Name, Workspace: content.Workspace, ID: content.ID,
	}, nil
}
