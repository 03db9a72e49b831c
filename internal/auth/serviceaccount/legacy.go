package serviceaccount

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Labels of secrets with which Kubernetes tracks unused tokens, and disables them before it deletes them.
const (
	LastUsedLabel     = "kubernetes.io/legacy-token-last-used"
	InvalidSinceLabel = "kubernetes.io/legacy-token-invalid-since"
)

// checkLegacy checks the token of a secret: it ends with the secret, with its service account, and with a label.
func (t *Tokens) checkLegacy(ctx context.Context, c *claims, token string) (user.Info, error) {
	for _, claim := range []struct{ value, text string }{
		{c.Subject, "sub claim is missing"}, {c.Namespace, "namespace claim is missing"},
		{c.SecretName, "secretName claim is missing"},
		{c.AccountName, "serviceAccountName claim is missing"}, {c.AccountUID, "serviceAccountUID claim is missing"},
	} {
		if claim.value == "" {
			return nil, errors.New(claim.text)
		}
	}
	if c.Subject != username(c.Namespace, c.AccountName) {
		return nil, errors.New("sub claim is invalid")
	}
	secret, err := t.get(ctx, "secrets", c.Namespace, c.SecretName)
	if err != nil {
		return nil, err
	}
	//lint:ignore ST1005 kube's texts
	gone, differs := errors.New("Token has been invalidated"), errors.New("Token does not match server's copy")
	if secret == nil || secret.Deleting {
		return nil, gone
	}
	kept, _ := secret.Field("data.token")
	copied, err := base64.StdEncoding.DecodeString(kept)
	if err != nil || subtle.ConstantTimeCompare(copied, []byte(token)) == 0 {
		return nil, differs
	}
	account, err := t.get(ctx, "serviceaccounts", c.Namespace, c.AccountName)
	switch {
	case err != nil:
		return nil, err
	case account == nil:
		return nil, fmt.Errorf("serviceaccounts %q not found", c.AccountName)
	case account.Deleting:
		return nil, fmt.Errorf("ServiceAccount %s/%s has been deleted", c.Namespace, c.AccountName)
	case account.UID != c.AccountUID:
		return nil, fmt.Errorf("ServiceAccount UID (%s) does not match claim (%s)", account.UID, c.AccountUID)
	}
	t.note(ctx, secret)
	if secret.Labels[InvalidSinceLabel] != "" {
		return nil,
			fmt.Errorf(
				"the token in secret %s/%s for service account %s/%s has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '%s' label from the secret to temporarily allow use of this token",
				c.Namespace, c.SecretName, c.Namespace, c.AccountName, InvalidSinceLabel)
	}
	if names(account, c.SecretName) {
		request.Warn(ctx,
			"Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.")
	}
	return serviceaccount.UserInfo(c.Namespace, c.AccountName, c.AccountUID), nil
}

// note records the day of a use, unless the label has it already. Around midnight the replicas' clocks may differ.
func (t *Tokens) note(ctx context.Context, secret *watchcache.Entry) {
	if t.config.Used == nil {
		return
	}
	now, lastUsed := t.config.Now().UTC(), secret.Labels[LastUsedLabel]
	today := now.Format(time.DateOnly)
	if lastUsed != today && lastUsed != now.AddDate(0, 0, 1).Format(time.DateOnly) {
		t.config.Used(ctx, secret, today)
	}
}

// names reports whether a service account refers to a secret, like the accounts with tokens created automatically
// before Kubernetes 1.24.
func names(account *watchcache.Entry, secret string) bool {
	var a corev1.ServiceAccount
	return bytes.Contains(account.JSON(), []byte(`"secrets"`)) && json.Unmarshal(account.JSON(), &a) == nil &&
		slices.ContainsFunc(a.Secrets, func(r corev1.ObjectReference) bool { return r.Name == secret })
}
