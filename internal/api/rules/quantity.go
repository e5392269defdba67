package rules

import (
	"math/big"
	"regexp"
	"strings"
)

// MaxQuantity is how long a quantity may be: longer than any that means something, and short enough to compute with.
const MaxQuantity = 32

var (
	quantity = regexp.MustCompile(`^\+?([0-9]+\.?[0-9]*|\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})?$`)
	suffixes = map[string]int64{
		"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
	}
)

// Quantity checks an amount of CPU or memory as Kubernetes writes it, such as 500m, 2 or 512Mi.
func Quantity(text string) string {
	if amount := ParseQuantity(text); amount == nil || amount.Sign() <= 0 {
		return "must be a Kubernetes quantity above zero: a number with an optional suffix, such as 500m, 2 or 512Mi"
	}
	return ""
}

// ParseQuantity gives the amount that a quantity stands for, so that 1000m and 1 compare equal; nil when it is none.
func ParseQuantity(text string) *big.Rat {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil || len(text) > MaxQuantity {
		return nil
	}
	number, suffix := strings.TrimSuffix(parts[1], "."), parts[2]
	if factor, ok := suffixes[suffix]; ok {
		amount, _ := new(big.Rat).SetString(number)
		return amount.Mul(amount, new(big.Rat).SetInt64(factor))
	}
	if suffix == "m" {
		suffix = "e-3"
	}
	amount, _ := new(big.Rat).SetString(number + suffix)
	return amount
}
