package token

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUserGroups(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	set := func(key, value string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
	}
	for _, tc := range []struct {
		name   string
		change func(*corev1.Secret)
		want   string // groups, or "problem: text"
	}{
		{"good", func(*corev1.Secret) {}, "system:bootstrappers"},
		{"not expired", set("expiration", "2026-01-02T03:04:06Z"), "system:bootstrappers"},
		{"expired", set("expiration", "2026-01-02T03:04:05Z"), "problem: the token has expired"},
		{"expiration that is none", set("expiration", "never"), "problem: the token has expired, or its expiration cannot be read"},
		{"groups", set("auth-extra-groups", "system:bootstrappers:z,system:bootstrappers:a,system:bootstrappers:z"),
			"system:bootstrappers,system:bootstrappers:a,system:bootstrappers:z"},
		{"masters", set("auth-extra-groups", "system:masters"), "problem: auth-extra-groups"},
		{"group with a line end", set("auth-extra-groups", "system:bootstrappers:a\n"), "problem: auth-extra-groups"},
		{"another type", func(s *corev1.Secret) { s.Type = "Opaque" }, "problem: the secret is of another type"},
		{"another secret", set("token-secret", "0123456789abcdeF"), "problem: the secret has another token-secret"},
		{"no secret", func(s *corev1.Secret) { s.Data = nil }, "problem: the secret has another token-secret"},
		{"another id", set("token-id", "abcdee"), "problem: the secret has another token-id"},
		{"for signing only", set("usage-bootstrap-authentication", "false"), "problem: usage"},
		{"for nothing", func(s *corev1.Secret) { delete(s.Data, "usage-bootstrap-authentication") }, "problem: usage"},
		{"being deleted", func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: now} },
			"problem: the secret is being deleted"},
	} {
		s := &corev1.Secret{Type: BootstrapType, Data: map[string][]byte{
			"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"),
			"usage-bootstrap-authentication": []byte("true"),
		}}
		tc.change(s)
		groups, problem := bootstrapGroups(s, "abcdef", "0123456789abcdef", now)
		got := strings.Join(groups, ",")
		if problem != "" {
			got = "problem: " + problem
		}
		if got != tc.want && !(problem != "" && strings.HasPrefix(got, tc.want) && tc.want != "") {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
