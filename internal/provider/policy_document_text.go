package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const (
	// policyText is the attribute with the text.
	policyText = "json"
	// jsonAttribute is the attribute of a middleware that is itself the text of an object.
	jsonAttribute = "config"
)

// writePolicy writes the configuration of a policy document as JSON: the same text for the same rules.
func writePolicy(config tftypes.Value) (string, error) {
	document, err := written(config, "")
	if err != nil {
		return "", err
	}
	fields, ok := document.(map[string]any)
	if !ok {
		return "", errors.New("the configuration is null")
	}
	delete(fields, policyText)
	fields["version"] = 1
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		return "", err
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

// written is a value as JSON writes it. Attributes that are null are left out; elements that are null stay, for the
// check of the policy to refuse. The name is that of the attribute the value belongs to.
func written(value tftypes.Value, name string) (any, error) {
	if value.IsNull() {
		return nil, nil
	}
	switch ty := value.Type(); {
	case ty.Is(tftypes.String):
		var text string
		err := value.As(&text)
		if name == jsonAttribute && json.Valid([]byte(text)) {
			return json.RawMessage(text), err
		}
		return text, err
	case ty.Is(tftypes.Bool):
		var truth bool
		err := value.As(&truth)
		return truth, err
	case ty.Is(tftypes.Number):
		number := new(big.Float)
		err := value.As(&number)
		return json.Number(number.Text('f', -1)), err
	case ty.Is(tftypes.List{}):
		return writtenList(value, name)
	case ty.Is(tftypes.Map{}), ty.Is(tftypes.Object{}):
		return writtenObject(value, name)
	default:
		return nil, fmt.Errorf("%s has a type that a policy does not", name)
	}
}

func writtenList(value tftypes.Value, name string) (any, error) {
	var elements []tftypes.Value
	if err := value.As(&elements); err != nil {
		return nil, err
	}
	list := make([]any, len(elements))
	for i, element := range elements {
		var err error
		if list[i], err = written(element, ""); err != nil {
			return nil, err
		}
	}
	switch {
	case name != "query" && name != "params" && name != "tool":
		return list, nil
	case len(list) == 1:
		return list[0], nil
	default:
		return map[string]any{"any": list}, nil
	}
}

func writtenObject(value tftypes.Value, name string) (any, error) {
	var attributes map[string]tftypes.Value
	if err := value.As(&attributes); err != nil {
		return nil, err
	}
	isMap := value.Type().Is(tftypes.Map{})
	object := make(map[string]any, len(attributes))
	for key, attribute := range attributes {
		inside := key
		if isMap {
			inside = name
		}
		value, err := written(attribute, inside)
		if err != nil {
			return nil, err
		}
		if value != nil || isMap {
			object[key] = value
		}
	}
	return object, nil
}
