package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Page sizes (upstream-contract, lists and pagination).
const (
	defaultPageSize = 100
	maxPageSize     = 1000
)

// pageSize settles how many items a page has.
func pageSize(wanted int32) (int, error) {
	switch {
	case wanted < 0:
		return 0, status.Error(codes.InvalidArgument, "page_size must not be negative")
	case wanted == 0:
		return defaultPageSize, nil
	}
	return min(int(wanted), maxPageSize), nil
}

// page is the part of a list that was asked for.
type page struct {
	size    int
	after   *store.Cursor
	binding []byte
}

// readPage reads a page token. list are the call and all of its parameters but the page size: together with the caller
// they are what a token is good for.
func readPage(ctx context.Context, size int, token string, list ...string) (page, error) {
	caller, _ := auth.FromContext(ctx)
	p := page{size: size, binding: bind(append(list, caller.Key())...)}
	var err error
	p.after, err = readPageToken(token, p.binding)
	return p, err
}

// next makes the token for what follows a page that was read; empty when nothing does.
func next[T any](p page, read store.Page[T], at func(T) store.Cursor) string {
	if !read.More {
		return ""
	}
	return pageToken(at(read.Rows[len(read.Rows)-1]), p.binding)
}

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

func pageToken(last store.Cursor, binding []byte) string {
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
