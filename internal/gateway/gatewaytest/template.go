package gatewaytest

import (
	"testing"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// MustTemplate makes a workload template in the workspace "default" that decides everything a template can.
func (g *Gateway) MustTemplate(t testing.TB, name, image string) {
	t.Helper()
	_, err := g.OpenShell().CreateSandboxTemplate(timeout(t), &openshellv1.CreateSandboxTemplateRequest{
		WorkspaceScope: Default(),
		Template: &openshellv1.SandboxWorkloadTemplate{
			Metadata: &datamodelv1.ObjectMeta{Name: name},
			Spec: &openshellv1.SandboxWorkloadTemplateSpec{
				Workload: &openshellv1.SandboxWorkloadConfig{
					Image: image, Environment: map[string]string{"TEMPLATE": name},
					Resources: &openshellv1.SandboxResources{Cpu: "1", Memory: "1Gi", Gpu: &openshellv1.GpuResourceRequirements{Count: new(uint32(1))}},
				},
				DriverConfig: DriverConfig(map[string]any{"ready_after": "10ms"}),
			},
		},
	})
	if err != nil {
		t.Fatalf("create template %s: %v", name, err)
	}
}

// DeleteTemplate deletes one. Sandboxes that were made from it do not mind.
func (g *Gateway) DeleteTemplate(t testing.TB, name string) {
	t.Helper()
	if _, err := g.OpenShell().DeleteSandboxTemplate(timeout(t), &openshellv1.DeleteSandboxTemplateRequest{Name: name, WorkspaceScope: Default()}); err != nil {
		t.Fatalf("delete template %s: %v", name, err)
	}
}
