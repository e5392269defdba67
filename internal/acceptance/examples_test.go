package acceptance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

var exampleFolder = filepath.Join("..", "..", "examples")

// The examples are valid. Each is a module of its own, so that one run takes them all.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(exampleFolder, "*", "*.tf"))
	more, err2 := filepath.Glob(filepath.Join(exampleFolder, "*", "*", "*.tf"))
	if files = append(files, more...); err != nil || err2 != nil || len(files) < 12 {
		t.Fatal(files, err, err2)
	}
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t)), t: t}
	main := ""
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "import-") {
			continue // see below
		}
		name := regexp.MustCompile(`\W+`).ReplaceAllString(strings.TrimPrefix(file, exampleFolder), "-")
		name = strings.Trim(name, "-")
		text := example(t, file)
		if !strings.Contains(text, "required_providers") {
			text = cli.RequiredProviders + text
		}
		writeFile(t, filepath.Join(s.Path, name, "main.tf"), text)
		main += fmt.Sprintf("module %q {\n  source = \"./%s\"\n", name, name)
		for _, match := range regexp.MustCompile(`(?m)^variable "(\w+)"`).FindAllStringSubmatch(text, -1) {
			main += "  " + match[1] + " = \"t\"\n"
		}
		main += "}\n"
	}
	s.write("main.tf", main)
	s.must(s.Run(t.Context(), "get"))
	s.must(s.Run(t.Context(), "validate", "-json"))
}

// The import blocks find the sandbox of the example beside them.
func TestExamplesOfImport(t *testing.T) {
	t.Parallel()
	for name, require := range map[string]func(testing.TB) cli.CLI{
		"import-by-string-id.tf": cli.Require,
		"import-by-identity.tf":  cli.RequireIdentity,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			id := g.MustCreate(t, "agent").GetMetadata().GetId()
			s := &stage{WorkingDir: cli.InTest(t, require(t)), t: t}
			s.provider(g)
			folder := filepath.Join(exampleFolder, "resources", "openshell_sandbox")
			s.write("resource.tf", example(t, filepath.Join(folder, "resource.tf")))
			s.write("import.tf", regexp.MustCompile(`[0-9a-f-]{36}`).ReplaceAllString(example(t, filepath.Join(folder, name)), id))
			s.must(s.Plan(t.Context(), savedPlan))
			plan, err := s.ShowPlan(t.Context(), savedPlan)
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.ResourceChanges) != 1 || plan.ResourceChanges[0].Change.Importing == nil {
				t.Errorf("planned %+v", plan.ResourceChanges)
			}
		})
	}
}

func example(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
