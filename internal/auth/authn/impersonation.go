package authn

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
)

const extraPrefix = "Impersonate-Extra-"

// Impersonation returns the user that the headers Impersonate-User, -Uid, -Group and -Extra-* ask to act as, with
// nothing added, and removes these headers: nothing behind may act differently because of them. It returns nil if
// there are none, and a 400 if they name everything but a user.
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
