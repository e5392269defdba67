package server

import (
	"errors"
	"maps"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// gatewaySettings is the key of the settings of the whole gateway.
var gatewaySettings = store.Key{Kind: store.KindGatewaySettings}

// sandboxSettings is the key of the settings of a sandbox.
func sandboxSettings(s store.Sandbox) store.Key {
	return store.Key{Kind: store.KindSandboxSettings, Workspace: s.Workspace, SandboxID: s.ID}
}

// settings are the values that are set in one place. Their revision is raised by every change.
type settings struct {
	object store.Object // its id is empty while there is no row
	*sandboxv1.GetGatewayConfigResponse
}

// readSettings reads settings, in or out of a transaction. Where none were ever set, there are none at revision 0.
func readSettings(key store.Key, read func(store.Key) (store.Object, error)) (settings, error) {
	o, err := read(key)
	if errors.Is(err, store.ErrObjectNotFound) {
		return settings{store.Object{Key: key}, &sandboxv1.GetGatewayConfigResponse{}}, nil
	}
	if err != nil {
		return settings{}, err
	}
	content, err := decode[sandboxv1.GetGatewayConfigResponse](o)
	return settings{o, content}, err
}

// apply sets or deletes what a request asks for, and says whether that is a change.
func (s *settings) apply(req *openshellv1.UpdateConfigRequest) bool {
	key := strings.TrimSpace(req.GetSettingKey())
	before, there := s.GetSettings()[key]
	if req.GetDeleteSetting() {
		delete(s.GetSettings(), key)
		return there
	}
	if there && proto.Equal(before, req.GetSettingValue()) {
		return false
	}
	all := map[string]*sandboxv1.SettingValue{key: req.GetSettingValue()}
	for other, value := range s.GetSettings() {
		if other != key {
			all[other] = value
		}
	}
	s.Settings = all
	return true
}

// write stores settings that have changed.
func (s *settings) write(tx store.Tx) (err error) {
	s.SettingsRevision++
	if s.object.Payload, err = encode(s.GetGatewayConfigResponse); err != nil {
		return err
	}
	if s.object.ID == "" {
		s.object.ID = uuid.NewString()
		s.object, err = tx.CreateObject(s.object)
		return err
	}
	s.object, err = tx.WriteObject(s.object)
	return err
}

// registered are all keys that there are, with the value that is set or an empty one.
func (s *settings) registered() map[string]*sandboxv1.SettingValue {
	all := map[string]*sandboxv1.SettingValue{}
	for _, key := range rules.SettingKeys() {
		all[key] = &sandboxv1.SettingValue{}
	}
	maps.Copy(all, s.GetSettings())
	return all
}

// checkSetting checks a request to set or delete a setting.
func checkSetting(req *openshellv1.UpdateConfigRequest) error {
	key := strings.TrimSpace(req.GetSettingKey())
	switch {
	case key == rules.PolicySetting && !req.GetGlobal():
		return &apierr.InvalidArgument{Field: "setting_key", Problem: "stands for the policy; set that by the field policy"}
	case key == rules.PolicySetting && !req.GetDeleteSetting():
		return &apierr.InvalidArgument{Field: "setting_key", Problem: "stands for the policy of the whole gateway, which can only be deleted by it; set that by the field policy"}
	case key == rules.PolicySetting:
		return nil
	}
	if problem := rules.SettingKey(key); problem != "" {
		return &apierr.InvalidArgument{Field: "setting_key", Problem: problem}
	}
	switch {
	case req.GetDeleteSetting():
		return nil
	case req.GetSettingValue() == nil:
		return &apierr.InvalidArgument{Field: "setting_value", Problem: "is required, unless delete_setting is set"}
	}
	if problem := rules.SettingValue(key, req.GetSettingValue()); problem != "" {
		return &apierr.InvalidArgument{Field: "setting_value", Problem: problem}
	}
	return nil
}
