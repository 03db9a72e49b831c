package control

import (
	"k8s.io/apiserver/pkg/authentication/user"
)

// ServerUser is the user that the server acts as where Kubernetes has kube-apiserver do it. Policies and webhooks may
// know it by its name.
func ServerUser() user.Info {
	return &user.DefaultInfo{
		Name: user.APIServerUser, Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup},
	}
}

// ControllerUser is the user that a controller acts as which Kubernetes has in kube-controller-manager.
func ControllerUser(name string) user.Info {
	return &user.DefaultInfo{
		Name:   "system:serviceaccount:kube-system:" + name,
		Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
	}
}
