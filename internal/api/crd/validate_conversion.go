package crd

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bowsprit/bowsprit/internal/net/webhook"
)

// checkConversion uses the paths of the internal type, which has "webhookClientConfig" and "conversionReviewVersions"
// in the conversion itself.
func checkConversion(c *apiextensionsv1.CustomResourceConversion, l allowances, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Strategy != Declarative {
		errs = checkEnum(string(c.Strategy), path.Child("strategy"), string(apiextensionsv1.NoneConverter),
			string(apiextensionsv1.WebhookConverter))
	}
	var client *apiextensionsv1.WebhookClientConfig
	var reviews []string
	if c.Webhook != nil {
		client, reviews = c.Webhook.ClientConfig, c.Webhook.ConversionReviewVersions
	}
	clientPath, reviewsPath := path.Child("webhookClientConfig"), path.Child("conversionReviewVersions")
	if c.Strategy != apiextensionsv1.WebhookConverter {
		const why = "should not be set when strategy is not set to Webhook"
		if client != nil {
			errs = append(errs, field.Forbidden(clientPath, why))
		}
		if len(reviews) > 0 {
			errs = append(errs, field.Forbidden(reviewsPath, why))
		}
		return errs
	}
	if client == nil {
		errs = append(errs, field.Required(clientPath, "required when strategy is set to Webhook"))
	} else {
		errs = append(errs, checkClient(client, l, clientPath)...)
	}
	return append(errs, webhook.CheckReviewVersions(reviews, "", l.unknownReviews, reviewsPath)...)
}

func checkClient(client *apiextensionsv1.WebhookClientConfig, l allowances, path *field.Path) (errs field.ErrorList) {
	switch {
	case (client.URL == nil) == (client.Service == nil):
		errs = append(errs, field.Required(path, "exactly one of url or service is required"))
	case client.URL != nil:
		errs = append(errs, webhook.CheckURL(*client.URL, path.Child("url"))...)
	default:
		service := client.Service
		errs = append(errs,
			webhook.CheckService(service.Namespace, service.Name, service.Path, ptr.Deref(service.Port, 0),
				path.Child("service"))...)
	}
	if !l.badCABundle {
		if err := checkCABundle(client.CABundle); err != nil {
			errs = append(errs, field.Invalid(path.Child("caBundle"), client.CABundle, err.Error()))
		}
	}
	return errs
}

// checkCABundle returns client-go's error for a bundle without a usable certificate; an empty bundle is valid.
func checkCABundle(bundle []byte) error {
	if len(bundle) == 0 || x509.NewCertPool().AppendCertsFromPEM(bundle) {
		return nil
	}
	return fmt.Errorf("unable to load root certificates: %w", firstPEMFault(bundle))
}

func firstPEMFault(bundle []byte) error {
	for len(bundle) > 0 {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			return errors.New("unable to parse bytes as PEM block")
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) != 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("failed to parse certificate: %w", err)
		}
	}
	return errors.New("no valid certificate authority data seen")
}
