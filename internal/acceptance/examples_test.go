package acceptance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
)

// The examples of how to connect are valid. Each is a module of its own, so that one run takes them all.
func TestExamplesOfTheProvider(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "provider", "*.tf"))
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t)), t: t}
	source := fmt.Sprintf("terraform {\n  required_providers {\n    openshell = {\n      source = %q\n    }\n  }\n}\n\n", cli.Address)
	main := ""
	for _, file := range files {
		example, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".tf")
		text := string(example)
		if !strings.Contains(text, "required_providers") {
			text = source + text
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
