package rules_test

import (
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
)

func TestQuantity(t *testing.T) {
	check(t, rules.Quantity,
		[]string{"1", "0.5", ".5", "1.", "+2", "500m", "2k", "1M", "512Mi", "1.5Gi", "1e3", "1E3", "12e-3", "1Ei", "1E", x("9", 32)},
		[]string{"", "0", "0m", "-1", "1 Gi", "1gi", "1K", "1KB", "Mi", ".", "m", "1e", "1e999", "1.2.3", "0x1", "1/2", "1_0", "inf", "½", x("9", 33)})
}

func TestQuantitiesCompare(t *testing.T) {
	for a, b := range map[string]string{
		"1": "1000m", "0.5": "500m", "1Gi": "1024Mi", "1Ki": "1024", "1k": "1e3", "2.": "2", "+1": "1E0", "1E": "1e18", "0.1": "100m",
	} {
		if rules.ParseQuantity(a).Cmp(rules.ParseQuantity(b)) != 0 {
			t.Errorf("%s and %s differ", a, b)
		}
	}
	if rules.ParseQuantity("1M").Cmp(rules.ParseQuantity("1Mi")) == 0 {
		t.Error("1M and 1Mi are equal")
	}
}
