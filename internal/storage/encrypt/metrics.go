package encrypt

// LibraryMetrics begin the names of the metrics that the library keeps in a registry of its own.
func LibraryMetrics() []string {
	return []string{
		"apiserver_storage_transformation_", "apiserver_storage_envelope_transformation_",
		"apiserver_storage_data_key_generation_", "apiserver_envelope_encryption_",
		"apiserver_encryption_config_controller_",
	}
}
