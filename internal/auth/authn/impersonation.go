package authn

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
)

// maxImpersonated bounds the sum of groups and values of extra keys in an impersonation: each needs an authorization,
// and headers have room for tens of thousands. Kubernetes has no limit.
const maxImpersonated = 2000

const extraPrefix = "Impersonate-Extra-"

// Impersonation returns the user in the headers Impersonate-User, -Uid, -Group and -Extra-*, without additions, and
// removes these headers, so that they cannot influence later code. It returns nil if there are none, a user without a
// name if they contain everything except a name, which package authz refuses, and a 400 if they contain too many
// values. It also removes the headers of front proxies, whether a proxy sent them or not.
func Impersonation(h http.Header) (*user.DefaultInfo, error) {
	impersonates := false
	for key := range h {
		switch {
		case strings.HasPrefix(key, "Impersonate-"):
			impersonates = true
		case strings.HasPrefix(key, "X-Remote-") && frontProxyHeader(key):
			delete(h, key)
		}
	}
	if !impersonates {
		return nil, nil
	}
	wanted := &user.DefaultInfo{Name: h.Get("Impersonate-User"), UID: h.Get("Impersonate-Uid")}
	wanted.Groups = append(wanted.Groups, h["Impersonate-Group"]...)
	more := wanted.UID != "" || len(wanted.Groups) > 0
	for key, values := range h {
		if !strings.HasPrefix(key, extraPrefix) {
			continue
		}
		more = true
		if len(values) == 0 {
			continue
		}
		if wanted.Extra == nil {
			wanted.Extra = map[string][]string{}
		}
		name := extraKey(key[len(extraPrefix):])
		wanted.Extra[name] = append(wanted.Extra[name], values...)
	}
	if wanted.Name == "" && !more {
		return nil, nil
	}
	count := len(wanted.Groups)
	for _, values := range wanted.Extra {
		count += len(values)
	}
	if count > maxImpersonated {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"requested to act with %d groups and values of extra keys: at most %d are allowed", count, maxImpersonated))
	}
	for key := range h {
		if key == "Impersonate-User" || key == "Impersonate-Uid" || key == "Impersonate-Group" ||
			strings.HasPrefix(key, extraPrefix) {
			delete(h, key)
		}
	}
	return wanted, nil
}

// frontProxyHeader reports whether the API server, as a front proxy, uses this header to name users.
func frontProxyHeader(key string) bool {
	return key == "X-Remote-User" || key == "X-Remote-Uid" || key == "X-Remote-Group" ||
		strings.HasPrefix(key, "X-Remote-Extra-")
}

// extraKey returns the key in the rest of a header's name: in lower case, since header names are case-insensitive, and
// percent-decoded if the encoding is valid.
func extraKey(rest string) string {
	key := strings.ToLower(rest)
	if decoded, err := url.PathUnescape(key); err == nil {
		return decoded
	}
	return key
}
