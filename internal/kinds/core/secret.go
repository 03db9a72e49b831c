package core

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func secretKind() rule.Kind {
	return rule.Of[corev1.Secret](rule.Kind{
		Group: coreV1, Kind: "Secret", AnyFinalizer: true, Plural: "secrets",
		Strategy: &catalog.Strategy{
			Default:             defaultSecret,
			Warnings:            warnSecret,
			UnconditionalUpdate: true,
			FieldLabels:         rule.FieldLabels("type"),
			Cells:               secretCells,
		},
	})
}

// defaultSecret sets the type of a secret and moves stringData, which is write-only, into data.
func defaultSecret(obj object.Object) {
	if object.String(obj, "type") == "" {
		obj["type"] = string(corev1.SecretTypeOpaque)
	}
	plain, _ := obj["stringData"].(map[string]any)
	delete(obj, "stringData")
	for key, v := range plain {
		if s, ok := v.(string); ok {
			object.Child(obj, "data")[key] = base64.StdEncoding.EncodeToString([]byte(s))
		}
	}
}

func validateSecret(s *corev1.Secret) field.ErrorList {
	errs := rule.CheckFinalizers(s.Finalizers)
	data := field.NewPath("data")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		errs = append(errs, checkKey(data, key)...)
		size += len(s.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	return append(errs, checkSecretType(s, data)...)
}

// checkSecretType validates the required keys of well-known secret types.
func checkSecretType(s *corev1.Secret, data *field.Path) field.ErrorList {
	missing := func(key string) bool { _, ok := s.Data[key]; return !ok }
	var errs field.ErrorList
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs,
				field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		errs = checkJSON(s, data, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		errs = checkJSON(s, data, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		// Either may be empty or missing, but not both.
		if missing(corev1.BasicAuthUsernameKey) && missing(corev1.BasicAuthPasswordKey) {
			errs = append(errs, field.Required(data.Key(corev1.BasicAuthUsernameKey), ""))
			errs = append(errs, field.Required(data.Key(corev1.BasicAuthPasswordKey), ""))
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(data.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if missing(key) {
				errs = append(errs, field.Required(data.Key(key), ""))
			}
		}
	}
	return errs
}

// checkJSON requires a JSON object under key. Errors do not show the content.
func checkJSON(s *corev1.Secret, data *field.Path, key string) field.ErrorList {
	content, ok := s.Data[key]
	if !ok {
		return field.ErrorList{field.Required(data.Key(key), "")}
	}
	if err := json.Unmarshal(content, &map[string]any{}); err != nil {
		return field.ErrorList{field.Invalid(data.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

func validateSecretUpdate(s, old *corev1.Secret, _ string) field.ErrorList {
	errs := validation.ValidateImmutableField(s.Type, old.Type, field.NewPath("type"))
	if isTrue(old.Immutable) {
		if !isTrue(s.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableWhenSet))
		}
		if !reflect.DeepEqual(s.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), immutableWhenSet))
		}
	}
	return append(errs, validateSecret(s)...)
}

// warnSecret warns about a TLS secret with a key that does not match its certificate.
func warnSecret(obj, _ object.Object, _ string) []string {
	if object.String(obj, "type") != string(corev1.SecretTypeTLS) {
		return nil
	}
	s, errs := rule.Read[corev1.Secret](obj)
	if errs != nil {
		return nil
	}
	if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func secretCells(obj object.Object, e catalog.Env) []any {
	data, _ := obj["data"].(map[string]any)
	return []any{object.String(obj, "metadata", "name"), object.String(obj, "type"), int64(len(data)),
		rule.Age(obj, e.Now)}
}

// secretFunctions are the functions that secret.txt names.
func secretFunctions() rule.Functions {
	return rule.Functions{
		"secret": rule.Typed(validateSecret, validateSecretUpdate),
	}
}
