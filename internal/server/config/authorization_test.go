package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

func TestConfigAuthorization(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		c    Authorization
		want []string // parts of the error; empty means no error
	}{
		{Authorization{}, nil},
		{Authorization{Modes: []string{"Node", "RBAC", "AlwaysDeny"}}, nil},
		{Authorization{Modes: []string{"RBAC", "Never"}}, []string{`authorization-mode "Never" is not a valid mode`}},
		{Authorization{Modes: []string{"RBAC", "RBAC"}},
			[]string{`authorization-mode ["RBAC" "RBAC"] has mode specified more than once`}},
		{Authorization{Modes: []string{"ABAC"}},
			[]string{"authorization-mode ABAC's authorization policy file not passed", "--authorization-policy-file"}},
		{Authorization{Modes: []string{"Webhook"}}, []string{
			"authorization-mode Webhook's authorization config file not passed", "--authorization-webhook-config-file",
		}},
		{Authorization{PolicyFile: "p"}, []string{"cannot specify --authorization-policy-file without mode ABAC"}},
		{Authorization{WebhookConfigFile: "w"},
			[]string{"cannot specify --authorization-webhook-config-file without mode Webhook"}},
		{Authorization{ConfigFile: "c", PolicyFile: "p", WebhookVersion: "v1beta1"}, nil},
		{Authorization{Modes: []string{"Webhook", "ABAC"}, PolicyFile: "p", WebhookConfigFile: "w"}, nil},
		{Authorization{ConfigFile: "c", Modes: []string{"RBAC"}}, []string{
			"--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined",
		}},
		{Authorization{ConfigFile: "c", WebhookCacheAuthorizedTTL: time.Second},
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
	c := Authorization{WebhookCacheUnauthorizedTTL: -1}
	c.setDefaults(kinds.Emulation{})
	if !slices.Equal(c.Modes, []string{"Node", "RBAC"}) || c.WebhookCacheAuthorizedTTL != 5*time.Minute ||
		c.WebhookCacheUnauthorizedTTL != -1 || c.WebhookVersion != "v1beta1" {
		t.Errorf("%+v", c)
	}
	c = Authorization{ConfigFile: "c"}
	if c.setDefaults(kinds.Emulation{}); len(c.Modes) != 0 {
		t.Errorf("with a file: %+v", c)
	}
}
