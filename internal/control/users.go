package control

import (
	"k8s.io/apiserver/pkg/authentication/user"
)

// ControllerUser is the user that a controller acts as which Kubernetes has in kube-controller-manager.
func ControllerUser(name string) user.Info {
	return &user.DefaultInfo{
		Name:   "system:serviceaccount:kube-system:" + name,
		Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
	}
}
