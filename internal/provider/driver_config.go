package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// parseObject reads the text of a JSON object. Its error does not repeat the text, which may hold secrets.
func parseObject(text string) (*structpb.Struct, error) {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("it is not valid JSON: the error is at byte %d", syntax.Offset)
		}
		return nil, errors.New("it is JSON, but not an object such as {\"docker\": {}}")
	}
	if object == nil {
		return nil, errors.New("it is the JSON value null; leave the argument out instead")
	}
	parsed, err := structpb.NewStruct(object)
	if err != nil {
		return nil, errors.New("it holds text that is not valid UTF-8")
	}
	return parsed, nil
}

// objectText is the other direction; null when there is nothing in it.
func objectText(object *structpb.Struct) (types.String, error) {
	if len(object.GetFields()) == 0 {
		return types.StringNull(), nil
	}
	text, err := json.Marshal(object.AsMap())
	return types.StringValue(string(text)), err
}

// sameObject tells whether two texts mean the same; nothing and an empty object do.
func sameObject(a, b types.String) bool {
	parse := func(s types.String) (*structpb.Struct, bool) {
		if s.IsUnknown() {
			return nil, false
		}
		if s.ValueString() == "" {
			return &structpb.Struct{}, true
		}
		object, err := parseObject(s.ValueString())
		return object, err == nil
	}
	one, ok := parse(a)
	other, ok2 := parse(b)
	return ok && ok2 && (len(one.GetFields())+len(other.GetFields()) == 0 || proto.Equal(one, other))
}

// jsonObject checks the text of a JSON object.
type jsonObject struct{}

func (jsonObject) Description(context.Context) string { return "must be the text of a JSON object" }

func (v jsonObject) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (jsonObject) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if _, err := parseObject(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "The JSON is not valid", fmt.Sprintf("%s must be the text of a JSON object: %v. jsonencode() makes one from an object.", req.Path, err))
	}
}
