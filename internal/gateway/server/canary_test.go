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
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
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

// databases are where a gateway may keep what it knows, and all that they then have in them, by where that is.
var databases = map[string]func(*testing.T) (option gatewaytest.Option, content func(*testing.T) map[string][]byte){
	"SQLite": func(t *testing.T) (gatewaytest.Option, func(*testing.T) map[string][]byte) {
		dir := t.TempDir()
		return gatewaytest.WithDBPath(filepath.Join(dir, "gateway.db")), func(t *testing.T) map[string][]byte { return filesIn(t, dir) }
	},
	"PostgreSQL": func(t *testing.T) (gatewaytest.Option, func(*testing.T) map[string][]byte) {
		url := pgtest.NewDatabase(t)
		return gatewaytest.WithDatabase(url), func(t *testing.T) map[string][]byte {
			return map[string][]byte{"the dump": pgtest.Dump(t, url)}
		}
	},
}

func TestMain(m *testing.M) { pgtest.Main(m) }

// The value of a credential is nowhere: not in a reply, an error, the log, the metrics or the database, SQLite's own log
// included.
func TestCredentialsAreNowhere(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) { credentialsAreNowhere(t, database) })
	}
}

func credentialsAreNowhere(t *testing.T, database func(*testing.T) (gatewaytest.Option, func(*testing.T) map[string][]byte)) {
	t.Helper()
	log := &buffer{}
	option, content := database(t)
	g := gatewaytest.Start(t, option, gatewaytest.WithLogger(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
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
		{"create, once", func() (proto.Message, error) {
			return o.CreateProvider(call(t), &openshellv1.CreateProviderRequest{Provider: provider("once", secret), WorkspaceScope: scope, RequestId: anID})
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
		{"update, once", func() (proto.Message, error) {
			return o.UpdateProvider(call(t), &openshellv1.UpdateProviderRequest{Provider: provider("p", secret), WorkspaceScope: scope, RequestId: anID})
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
		{"configuration", func() (proto.Message, error) {
			return o.GetSandboxConfig(call(t), &sandboxv1.GetSandboxConfigRequest{Name: "web", WorkspaceScope: scope})
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
	if replies != 12 {
		t.Errorf("%d of the steps succeeded, so the test does not show what it should", replies)
	}
	if strings.Contains(log.String(), canary) || !strings.Contains(log.String(), "CreateProvider") {
		t.Errorf("log:\n%s", log.String())
	}
	if strings.Contains(g.Metrics(t), canary) || !strings.Contains(g.Metrics(t), "CreateProvider") {
		t.Errorf("metrics:\n%s", g.Metrics(t))
	}
	search(t, content(t), canary, "GH_TOKEN")
	g.Stop(t) // which folds the log of SQLite into the database
	search(t, content(t), canary, "GH_TOKEN")
}

// The token of a session is told to its caller and nobody else; what is kept is a digest of it.
func TestTokensAreKeptNowhere(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			log := &buffer{}
			option, content := database(t)
			g := gatewaytest.Start(t, option, gatewaytest.WithLogger(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			g.MustCreate(t, "web")
			token := mustConnect(t, g).GetToken()
			sum := sha256.Sum256([]byte(token))
			search(t, content(t), token, hex.EncodeToString(sum[:]))
			for range 2 {
				_, err := revoke(t, g, token, false)
				if err != nil && strings.Contains(err.Error(), token) {
					t.Errorf("error %v", err)
				}
			}
			if text := log.String() + g.Metrics(t); strings.Contains(text, token) || !strings.Contains(text, "RevokeSshSession") {
				t.Errorf("log and metrics:\n%s", text)
			}
			g.Stop(t)
			search(t, content(t), token, "web")
		})
	}
}

// search looks for a secret in what a database has in it. Somewhere it must have what is kept beside the secret, or it is not
// where that would be.
func search(t *testing.T, content map[string][]byte, secret, beside string) {
	t.Helper()
	stored := false
	for where, text := range content {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s has a credential in it", where)
		}
		stored = stored || bytes.Contains(text, []byte(beside))
	}
	if !stored {
		t.Errorf("%q is nowhere in %v", beside, slices.Collect(maps.Keys(content)))
	}
}

// filesIn are the files of a folder.
func filesIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[path], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
