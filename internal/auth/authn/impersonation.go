package authn

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
)

// maxImpersonated is how many groups and values of extra keys a request may ask to act with, all together: an
// authorizer is asked about each of them, and headers have room for tens of thousands. Kubernetes has no limit.
const maxImpersonated = 2000

const extraPrefix = "Impersonate-Extra-"

// Impersonation returns the user that the headers Impersonate-User, -Uid, -Group and -Extra-* ask to act as, with
// nothing added, and removes these headers: nothing behind may act differently because of them. It returns nil if
// there are none, a user without a name if they name everything but a user, which package authz refuses, and a 400 if
// they name more than can be checked. The headers by which front proxies name users go too, whether a proxy sent them
// or not.
func Impersonation(h http.Header) (*user.DefaultInfo, error) {
	asked := false
	for key := range h {
		switch {
		case strings.HasPrefix(key, "Impersonate-"):
			asked = true
		case strings.HasPrefix(key, "X-Remote-") && frontProxyHeader(key):
			delete(h, key)
		}
	}
	if !asked {
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

// frontProxyHeader reports whether the API server names users in this header when it is a front proxy itself.
func frontProxyHeader(key string) bool {
	return key == "X-Remote-User" || key == "X-Remote-Uid" || key == "X-Remote-Group" ||
		strings.HasPrefix(key, "X-Remote-Extra-")
}

// extraKey returns the key that the rest of a header's name means: lower case, since header names have no case, and
// percent-decoded, if it is encoded correctly.
func extraKey(rest string) string {
	key := strings.ToLower(rest)
	if decoded, err := url.PathUnescape(key); err == nil {
		return decoded
	}
	return key
}
