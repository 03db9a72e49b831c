package connect

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// CheckAnswers returns an error unless a server answers requests of the user. The user may lack every permission.
func CheckAnswers(ctx context.Context, config *rest.Config) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	err = d.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) && !apierrors.IsUnauthorized(err) {
		return nil
	}
	return err
}

// Advise adds a remedy to an error of a request to a server, if the kind of the error has one.
func Advise(err error) error {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.As(err, &authority):
		return fmt.Errorf("%w: another server than that of the kubeconfig answers at its URL, or the server has a new "+
			"authority: get a new kubeconfig", err)
	case errors.As(err, &host):
		return fmt.Errorf("%w: use a URL with a name of the server's certificate", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: the server does not accept the credentials: the certificate or token has expired, or is of "+
			"another server", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: \"bowsprit why-denied\" explains a refusal", err)
	}
	return err
}
