package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// canary is part of every credential that the test below sends.
const canary = "cAnArY-7f3d9b52e1"

// buffer is a log that several goroutines may write.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// The value of a credential is nowhere: not in a reply, an error, the log, or a file of the database, its log included.
func TestCredentialsAreNowhere(t *testing.T) {
	dir, log := t.TempDir(), &buffer{}
	g := gatewaytest.Start(t, gatewaytest.WithDBPath(filepath.Join(dir, "gateway.db")),
		gatewaytest.WithLogger(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	importProfiles(t, g, nil, githubProfile())
	scope, o := gatewaytest.Default(), g.OpenShell()
	secret := map[string]string{"GH_TOKEN": canary, "webhook": canary + strings.Repeat("x", 4096)}
	provider := func(name string, credentials map[string]string) *datamodelv1.Provider {
		return &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: name}, Type: "github", Credentials: credentials}
	}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(secret)
		maps.Copy(all, more)
		return all
	}
	steps := []struct {
		name string
		do   func() (proto.Message, error)
	}{
		{"create", func() (proto.Message, error) {
			return o.CreateProvider(call(t), &openshellv1.CreateProviderRequest{Provider: provider("p", secret), WorkspaceScope: scope})
		}},
		{"create again", func() (proto.Message, error) {
			return o.CreateProvider(call(t), &openshellv1.CreateProviderRequest{Provider: provider("p", secret), WorkspaceScope: scope})
		}},
		{"undeclared", func() (proto.Message, error) {
			return o.CreateProvider(call(t), &openshellv1.CreateProviderRequest{Provider: provider("q", with(map[string]string{"OTHER": canary})), WorkspaceScope: scope})
		}},
		{"too long", func() (proto.Message, error) {
			return o.CreateProvider(call(t), &openshellv1.CreateProviderRequest{
				Provider: provider("q", with(map[string]string{"webhook": strings.Repeat(canary, 1000)})), WorkspaceScope: scope,
			})
		}},
		{"unknown type", func() (proto.Message, error) {
			p := provider("q", secret)
			p.Type = "none"
			return o.CreateProvider(call(t), &openshellv1.CreateProviderRequest{Provider: p, WorkspaceScope: scope})
		}},
		{"no scope", func() (proto.Message, error) {
			return o.CreateProvider(call(t), &openshellv1.CreateProviderRequest{Provider: provider("q", secret)})
		}},
		{"update", func() (proto.Message, error) {
			return o.UpdateProvider(call(t), &openshellv1.UpdateProviderRequest{Provider: provider("p", map[string]string{"webhook": canary + "2"}), WorkspaceScope: scope})
		}},
		{"update of none", func() (proto.Message, error) {
			return o.UpdateProvider(call(t), &openshellv1.UpdateProviderRequest{Provider: provider("q", secret), WorkspaceScope: scope})
		}},
		{"update, conflict", func() (proto.Message, error) {
			p := provider("p", secret)
			p.Metadata.ResourceVersion = 99
			return o.UpdateProvider(call(t), &openshellv1.UpdateProviderRequest{Provider: p, WorkspaceScope: scope})
		}},
		{"get", func() (proto.Message, error) {
			return o.GetProvider(call(t), &openshellv1.GetProviderRequest{Name: "p", WorkspaceScope: scope})
		}},
		{"list", func() (proto.Message, error) {
			return o.ListProviders(call(t), &openshellv1.ListProvidersRequest{WorkspaceScope: scope})
		}},
		{"create sandbox", func() (proto.Message, error) {
			return o.CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{Name: "web", WorkspaceScope: scope, Spec: &openshellv1.SandboxSpec{Providers: []string{"p"}}})
		}},
		{"attach", func() (proto.Message, error) { return attach(t, g, "web", "p", 0) }},
		{"list of the sandbox", func() (proto.Message, error) {
			return o.ListSandboxProviders(call(t), &openshellv1.ListSandboxProvidersRequest{Sandbox: "web", WorkspaceScope: scope})
		}},
		{"status", func() (proto.Message, error) {
			return o.GetSandboxProviderStatus(call(t), &openshellv1.GetSandboxProviderStatusRequest{Sandbox: "web", Provider: "p", WorkspaceScope: scope})
		}},
		{"get sandbox", func() (proto.Message, error) {
			return o.GetSandbox(call(t), &openshellv1.GetSandboxRequest{Name: "web", WorkspaceScope: scope})
		}},
		{"delete", func() (proto.Message, error) {
			return o.DeleteProvider(call(t), &openshellv1.DeleteProviderRequest{Name: "p", WorkspaceScope: scope})
		}},
	}
	replies := 0
	for _, step := range steps {
		reply, err := step.do()
		text := protojson.Format(reply)
		if err != nil {
			text = err.Error()
		} else {
			replies++
		}
		if strings.Contains(text, canary) {
			t.Errorf("%s: %s", step.name, text)
		}
	}
	if replies != 9 {
		t.Errorf("%d of the steps succeeded, so the test does not show what it should", replies)
	}
	if strings.Contains(log.String(), canary) || !strings.Contains(log.String(), "CreateProvider") {
		t.Errorf("log:\n%s", log.String())
	}
	searched := searchFiles(t, dir, canary, "GH_TOKEN")
	if len(searched) < 2 { // before it is folded into the database, at the shutdown
		t.Errorf("there is no log of the database to search, only %v", searched)
	}
	g.Stop(t)
	searchFiles(t, dir, canary, "GH_TOKEN")
}

// The token of a session is told to its caller and nobody else; what is kept is a digest of it.
func TestTokensAreKeptNowhere(t *testing.T) {
	dir, log := t.TempDir(), &buffer{}
	g := gatewaytest.Start(t, gatewaytest.WithDBPath(filepath.Join(dir, "gateway.db")),
		gatewaytest.WithLogger(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	g.MustCreate(t, "web")
	token := mustConnect(t, g).GetToken()
	sum := sha256.Sum256([]byte(token))
	searchFiles(t, dir, token, hex.EncodeToString(sum[:]))
	for range 2 {
		_, err := revoke(t, g, token, false)
		if err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("error %v", err)
		}
	}
	if strings.Contains(log.String(), token) || !strings.Contains(log.String(), "RevokeSshSession") {
		t.Errorf("log:\n%s", log.String())
	}
	g.Stop(t)
	searchFiles(t, dir, token, "")
}

// searchFiles looks for a secret in all files of a folder, and returns their names. One of them must have what is kept
// beside it, or it is not where the secret would be.
func searchFiles(t *testing.T, dir, secret, beside string) []string {
	t.Helper()
	var names []string
	stored := false
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(content) > 0 {
			names = append(names, entry.Name())
		}
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s has a credential in it", path)
		}
		stored = stored || bytes.Contains(content, []byte(beside))
		return nil
	})
	if err != nil || !stored {
		t.Errorf("no file has %q in it (%v): %v", beside, err, names)
	}
	return names
}
