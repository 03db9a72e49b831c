package token

import (
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BootstrapType is the type of secrets with bootstrap tokens, and BootstrapNamePrefix the prefix of their names, before
// the ID.
const (
	BootstrapType       corev1.SecretType = "bootstrap.kubernetes.io/token"
	BootstrapNamePrefix string            = "bootstrap-token-"
)

// The keys of such a secret.
const (
	keyID          = "token-id"
	keySecret      = "token-secret"
	keyExpiration  = "expiration"
	keyDescription = "description"
	keyGroups      = "auth-extra-groups"
	keyUsage       = "usage-bootstrap-" // before each of usages
)

// AsSecret returns the secret that holds the token.
func (t BootstrapToken) AsSecret() *corev1.Secret {
	data := map[string][]byte{keyID: []byte(t.ID), keySecret: []byte(t.Secret)}
	if t.Description != "" {
		data[keyDescription] = []byte(t.Description)
	}
	if !t.Expires.IsZero() {
		data[keyExpiration] = []byte(t.Expires.UTC().Format(time.RFC3339))
	}
	for _, u := range t.Usages {
		data[keyUsage+u] = []byte("true")
	}
	if len(t.Groups) > 0 {
		data[keyGroups] = []byte(strings.Join(t.Groups, ","))
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: BootstrapNamePrefix + t.ID, Namespace: metav1.NamespaceSystem},
		Type:       BootstrapType, Data: data,
	}
}

// BootstrapOf returns the token in a secret, for display. The error describes a problem with the secret.
func BootstrapOf(s *corev1.Secret) (BootstrapToken, error) {
	value := func(key string) string { return string(s.Data[key]) }
	t, err := ParseBootstrap(value(keyID) + "." + value(keySecret))
	switch {
	case value(keyID) == "":
		return t, fmt.Errorf("bootstrap Token Secret has no token-id data: %s", s.Name)
	case s.Name != BootstrapNamePrefix+value(keyID):
		return t, fmt.Errorf("bootstrap token name is not of the form '%s(token-id)'. Actual: %q. Expected: %q",
			BootstrapNamePrefix, s.Name, BootstrapNamePrefix+value(keyID))
	case value(keySecret) == "":
		return t, fmt.Errorf("bootstrap Token Secret has no token-secret data: %s", s.Name)
	case err != nil:
		return t, err
	}
	if text := value(keyExpiration); text != "" {
		if t.Expires, err = time.Parse(time.RFC3339, text); err != nil {
			return t, fmt.Errorf("can't parse expiration time of bootstrap token %q: %w", s.Name, err)
		}
	}
	t.Description = value(keyDescription)
	for key, on := range s.Data {
		if u, ok := strings.CutPrefix(key, keyUsage); ok && string(on) == "true" {
			t.Usages = append(t.Usages, u)
		}
	}
	slices.Sort(t.Usages)
	if text := value(keyGroups); text != "" {
		t.Groups = strings.Split(text, ",")
		slices.Sort(t.Groups)
	}
	return t, nil
}

// BootstrapRemaining returns the remaining lifetime of a secret's token: 0 and false without an expiry, 0 and true if
// it has expired or if the time is invalid.
func BootstrapRemaining(s *corev1.Secret, now time.Time) (left time.Duration, expired bool) {
	text := string(s.Data[keyExpiration])
	if text == "" {
		return 0, false
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil || !end.After(now) {
		return 0, true
	}
	return end.Sub(now), false
}

// BootstrapForSigning returns the token of a secret for signing cluster information; ok is false if it must not be
// used.
func BootstrapForSigning(s *corev1.Secret, now time.Time) (BootstrapToken, bool) {
	t := BootstrapToken{ID: string(s.Data[keyID]), Secret: string(s.Data[keySecret])}
	if !ids.MatchString(t.ID) || s.Name != BootstrapNamePrefix+t.ID || t.Secret == "" ||
		string(s.Data[keyUsage+usages[0]]) != "true" {
		return t, false
	}
	_, expired := BootstrapRemaining(s, now)
	return t, !expired
}

// bootstrapGroups returns the sorted groups of a user with the token id.secret, from its secret; problem describes an
// invalid token.
func bootstrapGroups(s *corev1.Secret, id, secret string, now time.Time) (in []string, problem string) {
	value := func(key string) string { return string(s.Data[key]) }
	switch {
	case s.DeletionTimestamp != nil:
		return nil, "the secret is being deleted"
	case s.Type != BootstrapType:
		return nil, "the secret is of another type than " + string(BootstrapType)
	case subtle.ConstantTimeCompare([]byte(value(keySecret)), []byte(secret)) != 1:
		return nil, "the secret has another " + keySecret
	case value(keyID) != id:
		return nil, "the secret has another " + keyID
	}
	if _, expired := BootstrapRemaining(s, now); expired {
		return nil, "the token has expired, or its expiration cannot be read"
	}
	if usage := keyUsage + usages[1]; value(usage) != "true" {
		return nil, usage + " is not true"
	}
	in = []string{bootstrappers}
	if more := value(keyGroups); more != "" {
		for group := range strings.SplitSeq(more, ",") {
			if !groups.MatchString(group) {
				return nil, keyGroups + " has a name that is no bootstrap group"
			}
			in = append(in, group)
		}
	}
	slices.Sort(in)
	return slices.Compact(in), ""
}
