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
// there are none, and a 400 if they name everything but a user, or more than can be checked.
func Impersonation(h http.Header) (*user.DefaultInfo, error) {
	asked := false
	for key := range h {
		if strings.HasPrefix(key, "Impersonate-") {
			asked = true
			break
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
		name := extraName(key)
		wanted.Extra[name] = append(wanted.Extra[name], values...)
	}
	if wanted.Name == "" {
		if more {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("requested %#v without impersonating a user name", wanted))
		}
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

// extraName returns the key that a header Impersonate-Extra-{key} means: lower case, since header names have no case,
// and percent-decoded, if it is encoded correctly.
func extraName(header string) string {
	name := strings.ToLower(header[len(extraPrefix):])
	if decoded, err := url.PathUnescape(name); err == nil {
		return decoded
	}
	return name
}
