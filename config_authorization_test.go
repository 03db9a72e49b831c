package bowsprit

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestConfigAuthorization(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		c    AuthorizationConfig
		want []string // parts of the error; empty means no error
	}{
		{AuthorizationConfig{}, nil},
		{AuthorizationConfig{Modes: []string{"Node", "RBAC", "AlwaysDeny"}}, nil},
		{AuthorizationConfig{Modes: []string{"RBAC", "Never"}}, []string{`authorization-mode "Never" is not a valid mode`}},
		{AuthorizationConfig{Modes: []string{"RBAC", "RBAC"}},
			[]string{`authorization-mode ["RBAC" "RBAC"] has mode specified more than once`}},
		{AuthorizationConfig{Modes: []string{"ABAC"}},
			[]string{"authorization-mode ABAC's authorization policy file not passed", "--authorization-policy-file"}},
		{AuthorizationConfig{Modes: []string{"Webhook"}}, []string{
			"authorization-mode Webhook's authorization config file not passed", "--authorization-webhook-config-file",
		}},
		{AuthorizationConfig{PolicyFile: "p"}, []string{"cannot specify --authorization-policy-file without mode ABAC"}},
		{AuthorizationConfig{WebhookConfigFile: "w"},
			[]string{"cannot specify --authorization-webhook-config-file without mode Webhook"}},
		{AuthorizationConfig{ConfigFile: "c", PolicyFile: "p", WebhookVersion: "v1beta1"}, nil},
		{AuthorizationConfig{Modes: []string{"Webhook", "ABAC"}, PolicyFile: "p", WebhookConfigFile: "w"}, nil},
		{AuthorizationConfig{ConfigFile: "c", Modes: []string{"RBAC"}}, []string{
			"--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined",
		}},
		{AuthorizationConfig{ConfigFile: "c", WebhookCacheAuthorizedTTL: time.Second},
			[]string{"--authorization-config can not be specified"}},
	} {
		var p problems
		tc.c.validate(&p)
		if (len(p) == 0) != (len(tc.want) == 0) {
			t.Errorf("%+v: %v", tc.c, p)
			continue
		}
		for _, part := range tc.want {
			if !strings.Contains(errors.Join(p...).Error(), part) {
				t.Errorf("%+v: %v, want %s", tc.c, p, part)
			}
		}
	}
}

func TestAuthorizationDefaults(t *testing.T) {
	t.Parallel()
	c := AuthorizationConfig{WebhookCacheUnauthorizedTTL: -1}
	c.setDefaults(true)
	if !slices.Equal(c.Modes, []string{"Node", "RBAC"}) || c.WebhookCacheAuthorizedTTL != 5*time.Minute ||
		c.WebhookCacheUnauthorizedTTL != -1 || c.WebhookVersion != "v1beta1" {
		t.Errorf("%+v", c)
	}
	c = AuthorizationConfig{ConfigFile: "c"}
	if c.setDefaults(true); len(c.Modes) != 0 {
		t.Errorf("with a file: %+v", c)
	}
}
