package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
)

// These validators never repeat the value, so that they can stand on sensitive attributes.

// notEmpty refuses "", which is neither a value nor the absence of one.
type notEmpty struct{}

func (notEmpty) Description(context.Context) string { return "must not be empty" }

func (v notEmpty) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (notEmpty) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !req.ConfigValue.IsNull() && !req.ConfigValue.IsUnknown() && req.ConfigValue.ValueString() == "" {
		resp.Diagnostics.AddAttributeError(req.Path, "An empty text is not allowed",
			fmt.Sprintf("%s must not be empty. Leave it out, or set it to null, if there is no value.", req.Path))
	}
}

// objectName checks the name of a sandbox or workspace.
type objectName struct{}

func (objectName) Description(context.Context) string {
	return fmt.Sprintf("must have 1 to %d characters of a-z, 0-9 and single hyphens between them", rules.MaxName)
}

func (v objectName) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (objectName) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if problem := rules.Name(req.ConfigValue.ValueString()); problem != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "The name is not valid", fmt.Sprintf("%s %s. Choose another one.", req.Path, problem))
	}
}

// namePrefix checks the beginning of a name that is invented.
type namePrefix struct{}

func (namePrefix) Description(context.Context) string {
	return fmt.Sprintf("must have 1 to %d characters of a-z, 0-9 and single hyphens, the first of them no hyphen", maxNamePrefix)
}

func (v namePrefix) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v namePrefix) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if prefix := req.ConfigValue.ValueString(); prefix == "" || len(prefix) > maxNamePrefix || rules.Name(prefix+"a") != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "The beginning of a name is not valid", fmt.Sprintf("%s %s. Choose another one.", req.Path, v.Description(ctx)))
	}
}

// quantity checks an amount of CPU or memory.
type quantity struct{}

func (quantity) Description(context.Context) string {
	return "must be a Kubernetes quantity above zero, such as 500m, 2 or 512Mi"
}

func (v quantity) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (quantity) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if problem := rules.Quantity(req.ConfigValue.ValueString()); problem != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "The amount is not valid", fmt.Sprintf("%s %s.", req.Path, problem))
	}
}

// positiveDuration checks a duration such as 30s.
type positiveDuration struct{}

func (positiveDuration) Description(context.Context) string {
	return "must be a duration above zero, such as 30s or 1m30s"
}

func (v positiveDuration) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v positiveDuration) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if d, err := time.ParseDuration(req.ConfigValue.ValueString()); err != nil || d <= 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "The duration is not valid", fmt.Sprintf("%s %s.", req.Path, v.Description(ctx)))
	}
}

// sandboxID checks the id of a sandbox.
type sandboxID struct{}

func (sandboxID) Description(context.Context) string { return "must be a UUID" }

func (v sandboxID) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (sandboxID) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if !isSandboxID(req.ConfigValue.ValueString()) {
		resp.Diagnostics.AddAttributeError(req.Path, "The id is not valid", fmt.Sprintf("%s must be a UUID, as the gateway gave it; it is not the sandbox's name.", req.Path))
	}
}
