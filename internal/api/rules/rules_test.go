package rules_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
)

// check holds a rule to what is good and what is bad.
func check(t *testing.T, rule func(string) string, good, bad []string) {
	t.Helper()
	for _, value := range good {
		if problem := rule(value); problem != "" {
			t.Errorf("%q is refused: %s", value, problem)
		}
	}
	for _, value := range bad {
		if rule(value) == "" {
			t.Errorf("%q is taken", value)
		}
	}
}

var x = strings.Repeat

func TestName(t *testing.T) {
	check(t, rules.Name,
		[]string{"a", "0", "web", "a-b", "0-9", "a-b-c-d", x("a", 19)},
		[]string{"", "A", "a_b", "a.b", "a b", "é", "-a", "a-", "-", "a--b", x("a", 20), "a\x00", "а" /* Cyrillic */})
}

func TestLabelKey(t *testing.T) {
	check(t, rules.LabelKey,
		[]string{"a", "A", "a.b_c-d", "0", x("a", 63), "example.com/a", "a/b", "a-b.c/d", x("a", 189) + "/" + x("b", 63)},
		[]string{"", "/", "a/", "/a", "a/b/c", "-a", "a-", ".a", "a.", "_a", "a_", "a b", "é", x("a", 64), "A.com/a", "a..b/c", "-a/b", "a-/b", ".a/b", "a./b", "a_b/c", x("a", 190) + "/" + x("b", 63)})
}

func TestLabelValue(t *testing.T) {
	check(t, rules.LabelValue,
		[]string{"", "a", "A.b_c-d", "0", x("a", 63)},
		[]string{"-", "-a", "a-", ".", "a b", "a/b", "é", x("a", 64)})
}

func TestEnvironmentKey(t *testing.T) {
	check(t, rules.EnvironmentKey,
		[]string{"A", "a", "_", "_1", "A_B1", "OPENSHELL", "openshell_a", "_OPENSHELL_A", x("A", 256)},
		[]string{"", "1A", "A-B", "A.B", "A B", "é", "A=B", "OPENSHELL_", "OPENSHELL_A", x("A", 257)})
}

func TestEnvironmentValue(t *testing.T) {
	check(t, rules.EnvironmentValue,
		[]string{"", "any text, ünïcödé too\t", x("v", 8192)},
		[]string{"a\n", "\r", "\x00", x("v", 8193)})
}

func TestLabelSelector(t *testing.T) {
	for selector, want := range map[string]map[string]string{
		"": {}, ",": {}, "a=b": {"a": "b"}, " a = b , c=d,,": {"a": "b", "c": "d"}, "a=": {"a": ""}, "a=b,a=b": {"a": "b"}, "e.com/a=b": {"e.com/a": "b"},
	} {
		got, problem := rules.LabelSelector(selector)
		if diff := cmp.Diff(want, got); problem != "" || diff != "" {
			t.Errorf("%q: %s\n%s", selector, problem, diff)
		}
	}
	for _, selector := range []string{"a", "=b", "a!=b", "a in (b)", "a=b=c", "a=b,a=c", "a b=c", x("a=b,", 65)} {
		if got, problem := rules.LabelSelector(selector); problem == "" {
			t.Errorf("%q is taken as %v", selector, got)
		}
	}
}

// A selector made of good labels is read as these labels.
func TestSelectorsOfGoodLabels(t *testing.T) {
	key := rapid.StringMatching(`([a-z0-9]{1,9}(\.[a-z0-9]{1,9})?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?`)
	value := rapid.StringMatching(`([A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?)?`)
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.MapOfN(key, value, 0, rules.MaxSelectorPairs).Draw(t, "labels")
		if problem := rules.Labels(labels); problem != "" {
			t.Fatalf("good labels are refused: %s", problem)
		}
		var pairs []string
		for k, v := range labels {
			pairs = append(pairs, k+"="+v)
		}
		got, problem := rules.LabelSelector(strings.Join(pairs, ","))
		if diff := cmp.Diff(labels, got); problem != "" || diff != "" {
			t.Fatalf("%s\n%s", problem, diff)
		}
	})
}

// No problem repeats a value of the environment, which may be secret.
func TestProblemsKeepSecrets(t *testing.T) {
	const secret = "canary"
	for _, environment := range []map[string]string{
		{"A": secret + "\n"}, {"A": secret + "\x00"}, {"A": x(secret, 2000)}, {"1A": secret}, {"OPENSHELL_A": secret},
	} {
		v := rules.Spec("spec", &openshellv1.SandboxSpec{Environment: environment})
		if v == nil || strings.Contains(v.Field+v.Problem, secret) {
			t.Errorf("%+v", v)
		}
	}
	if v := rules.Annotations("annotations", map[string]string{"a": x(secret, 2000)}); v == nil || strings.Contains(v.Problem, secret) {
		t.Errorf("%+v", v)
	}
}

// Of several violations the same one is told each time.
func TestViolationsAreStable(t *testing.T) {
	environment := map[string]string{"z-": "", "a-": "", "m-": "", "q-": ""}
	first := rules.Environment("e", environment)
	for range 20 {
		if diff := cmp.Diff(first, rules.Environment("e", environment)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestNilIsFine(t *testing.T) {
	if v := rules.Spec("spec", nil); v != nil {
		t.Error(v)
	}
}
