"""Trouble that users of other systems reported, by its number in the specification's `cases.md`, and who shows ours.

A case is an example of its class. `SHOWN` names the tests that try it, `LATER` what it still waits for. Every case of
references, sources, layers, transfer, the node's store and starting stands in one of the two; tests/architecture
sees that each named test exists.
"""

_AWKWARD = "e2e/test_awkward_images.py::test_it_gets_its_right_answer"
_TABLE = "cli/test_references.py::test_interface_and_command_line_agree"
_GRAMMAR = "domain/test_reference.py::test_oci_table"
_UNSAFE = "engine/test_unpack.py::test_unsafe_layers_are_refused_by_name"
_STACKS = "engine/test_unpack_over_parents.py::test_any_stack_is_the_layers_one_after_another"
_SOURCES = "contracts/image_source_suite.py::"
_REGISTRY = "contracts/test_registry_source.py::"
_ARCHIVE = "contracts/test_docker_archive.py::"
_STORE = "engine/test_store.py::"
_OVER = "engine/test_unpack_over_parents.py::"
_FAULTS = "contracts/test_registry_faults.py::"
_EXEC = "contracts/provider_exec.py::"

SHOWN: dict[str, tuple[str, ...]] = {
    # Names and references
    "R01": (_REGISTRY + "test_a_digest_goes_before_a_tag_and_is_held", _TABLE),
    "R03": (_TABLE, _AWKWARD, "app/test_publish.py::test_what_cannot_be_published_is_refused_at_once"),
    "R04": (_TABLE, _GRAMMAR),
    "R05": (_TABLE, "engine/test_documents.py::test_digests_are_read_strictly"),
    "R06": (_AWKWARD, "engine/test_documents.py::test_digests_are_read_strictly"),
    "R08": ("api/test_strict.py::test_fields_of_everything_else",),
    "R10": (
        "contracts/store_races_suite.py::test_one_image_gets_a_name_and_as_many_as_there_is_room_for",
        "contracts/store_catalog_suite.py::test_a_name_is_used_once",
    ),
    # Manifests, platforms, media types
    "R11": (
        _SOURCES + "test_attestations_are_neither_offered_nor_copied",
        _REGISTRY + "test_an_attestation_is_neither_offered_nor_asked_for",
    ),
    "R12": (_AWKWARD, _SOURCES + "test_a_platform_that_is_not_there_says_what_is"),
    "R13": (_AWKWARD, _STORE + "test_the_platform_is_looked_at_again"),
    "R16": (
        _STORE + "test_the_record_tells_the_identity_and_the_stack",
        _ARCHIVE + "test_the_image_is_the_one_it_is_elsewhere",
    ),
    "R17": (_REGISTRY + "test_a_header_can_raise_doubts_about_content_and_settle_none",),
    "R18": (_REGISTRY + "test_every_type_is_accepted_and_nothing_is_packed", _AWKWARD),
    "R19": (
        "engine/test_documents.py::test_a_manifest_need_not_say_its_type_but_must_not_lie",
        "engine/test_documents.py::test_an_index_that_is_a_manifest_too",
    ),
    "R21": (_AWKWARD, "engine/test_documents.py::test_docker_types_are_read"),
    "R22": (_REGISTRY + "test_no_address_that_an_image_names_is_asked",),
    "R23": (
        "api/test_content.py::test_history_shows_each_layer_with_its_size_and_the_steps_that_left_none",
        "engine/test_documents.py::test_a_history_is_told_where_it_fits_the_layers",
        "engine/test_documents.py::test_layers_and_diff_ids_are_as_many",
        "cli/test_cli.py::test_each_command_speaks_to_people_and_to_programs",
    ),
    "R25": (_AWKWARD, _ARCHIVE + "test_the_image_is_the_one_it_is_elsewhere"),
    "R27": (_AWKWARD, _SOURCES + "test_a_tag_chooses_and_no_image_is_implied"),
    "R28": (
        _STORE + "test_a_tree_that_is_here_changes_no_verdict",
        _SOURCES + "test_the_same_verdict_with_a_warm_store",
    ),
    # Layers on disk
    "R29": (_AWKWARD, _UNSAFE),
    "R30": (_AWKWARD, "engine/test_unpack.py::test_links_to_the_host_lead_into_the_image"),
    "R32": (_AWKWARD, _UNSAFE),
    "R33": (_AWKWARD, _UNSAFE, _OVER + "test_hard_links_bring_their_target_along", _STACKS),
    "R34": (_AWKWARD, "engine/test_unpack.py::test_honest_layers_pass"),
    "R35": (_AWKWARD, _OVER + "test_implied_folders_are_what_they_are_below", _STACKS),
    "R36": (_AWKWARD, _OVER + "test_paths_through_links_below_lead_where_they_lead", _STACKS),
    "R38": (_AWKWARD, "engine/test_unpack.py::test_the_order_of_entries_does_not_matter", _STACKS),
    "R39": (
        _AWKWARD,
        "engine/test_unpack.py::test_an_image_does_not_steer_the_host",
        "engine/test_unpack.py::test_a_host_without_device_nodes_is_unfit",
    ),
    "R40": (_AWKWARD, _UNSAFE),
    "R41": (
        _AWKWARD,
        "engine/test_unpack.py::test_everything_of_an_entry_is_kept",
        "engine/test_rootfs.py::test_file_capabilities_work_in_the_sandbox",
    ),
    "R43": (
        "engine/test_unpack_fixtures.py::test_a_bomb_meets_the_limit",
        "engine/test_unpack.py::test_memory_does_not_grow_with_the_layer",
        "engine/test_huge.py::test_memory_stays_flat_however_large_a_layer_is",
    ),
    "R44": (_AWKWARD, "engine/test_tar.py::test_damage_is_never_the_end"),
    "R45": (_AWKWARD, "engine/test_tar.py::test_sparse_files_as_gnu_tar_writes_them"),
    "R46": (
        _STORE + "test_one_layer_twice_in_an_image",
        _STORE + "test_images_share_a_base_and_part_with_it_last",
        _STORE + "test_calls_at_once_unpack_each_layer_once",
    ),
    # Transfer and storage on the node
    "R47": (
        _FAULTS + "test_each_fault_ends_rightly_and_soon",
        _FAULTS + "test_a_transfer_that_never_fits_together_is_no_verdict_on_the_content",
        _REGISTRY + "test_a_resumed_download_with_other_bytes_is_made_anew",
    ),
    "R49": (
        "engine/test_power_loss.py::test_no_record_says_done_before_its_bytes_are_durable",
        "engine/test_power_loss.py::test_a_blob_is_there_whole_or_not_at_all",
    ),
    "R51": (_REGISTRY + "test_what_many_want_is_fetched_once", _STORE + "test_processes_share_one_store"),
    "R53": ("engine/test_cancel.py::test_cancelled_and_asked_for_again_fifty_times",),
    "R54": (
        _STORE + "test_a_full_disk_is_no_space_and_leaves_nothing",
        "engine/test_no_space.py::test_at_any_size_it_fits_or_is_refused_and_all_is_as_before",
        "engine/test_no_space.py::test_every_step_that_writes_may_find_it_full",
        "engine/test_cancel.py::test_room_that_is_made_is_used_at_once",
    ),
    "R56": (_FAULTS + "test_each_fault_ends_rightly_and_soon", _FAULTS + "test_others_go_on_while_one_drips"),
    # Registries
    "R58": (_REGISTRY + "test_four_ways_to_say_no", "api/test_registries.py::test_what_a_registry_can_come_to"),
    "R59": (
        _REGISTRY + "test_a_registry_is_not_asked_before_the_time_it_names",
        _REGISTRY + "test_without_a_time_the_pauses_after_a_limit_grow",
        _FAULTS + "test_a_limit_holds_for_everybody_who_asks_that_registry",
        "api/test_registries.py::test_a_limit_is_passed_on_with_its_time",
    ),
    "R63": (
        "contracts/test_registry_tags.py::test_250_tags_of_a_real_registry_in_pages",
        "contracts/test_registry_tags.py::test_every_page_is_asked_for_as_the_link_spells_it",
    ),
    "R64": ("contracts/test_registry_blobs.py::test_the_registrys_garbage_collection_takes_nothing_of_ours",),
    "R70": (
        "flow/test_evict.py::test_the_oldest_go_until_the_low_mark_and_no_further",
        "flow/test_evict.py::test_shared_parts_count_once_and_go_with_the_last_that_has_them",
    ),
    "R86": (
        "flow/test_evict.py::test_demand_goes_before_preload_and_preload_makes_nothing_go",
        "app/test_budget.py::test_preloads_that_do_not_fit_wait_and_make_nothing_go",
    ),
    # Starting and running processes
    "R92": (_AWKWARD, "domain/test_command.py::test_argv", _EXEC + "test_the_images_own_command"),
    "R93": (_AWKWARD, _EXEC + "test_users"),
    "R94": (_AWKWARD, _EXEC + "test_users_that_are_not_there", "domain/test_command.py::test_users_without_files"),
    "R96": (_AWKWARD, _EXEC + "test_a_working_folder_that_is_missing_is_made"),
    "R97": (_AWKWARD, _EXEC + "test_environment"),
    "R98": (_AWKWARD, _EXEC + "test_no_shell_is_involved_unless_asked_for"),
    "R99": (_AWKWARD, _EXEC + "test_what_cannot_be_run"),
    "R101": (_AWKWARD, _EXEC + "test_nothing_is_lost_at_exit", _EXEC + "test_the_last_words_are_heard_every_time"),
    "R102": ("api/test_exec.py::test_collected_output_is_capped_and_says_so", _EXEC + "test_time_out"),
    "R104": (
        _EXEC + "test_a_time_out_kills_the_whole_tree",
        "api/test_exec.py::test_a_client_that_goes_away_kills_its_command",
    ),
    "R105": (_AWKWARD, _EXEC + "test_orphans_are_reaped"),
    "R106": (_AWKWARD, "providers/test_oci_real.py::test_ending_a_sandbox_asks_first"),
    "R107": (
        "contracts/provider_terminal.py::test_a_terminal_has_a_size_and_a_type",
        "contracts/provider_terminal.py::test_a_terminal_is_resized_while_its_program_runs",
        "api/test_exec.py::test_a_size_that_comes_before_the_terminal_is_kept",
    ),
    # API, publishing, operations
    "R109": (
        "api/test_sessions.py::test_a_key_makes_one_session",
        "api/test_sessions.py::test_creates_at_once_with_one_key_make_one",
        "app/test_crash_anywhere.py::test_the_same_key_gives_the_same_session_whatever_happened_to_it",
    ),
    "R111": (
        "e2e/test_publish.py::test_a_step_that_fails_says_which_and_why",
        "app/test_publish.py::test_a_failed_step_is_the_end_and_leaves_no_release",
    ),
    "R112": ("e2e/test_publish.py::test_kill_9_of_core_while_it_builds",),
    "R114": (
        "e2e/test_never_another_image.py::test_a_moved_tag_moves_no_session",
        "api/test_catalog.py::test_identical_content_is_the_release_there_is",
    ),
    "R116": (_AWKWARD, "api/test_registries.py::test_what_a_registry_can_come_to"),
    "R118": (
        "api/test_catalog.py::test_names_and_limits",
        "contracts/store_races_suite.py::test_one_image_gets_a_name_and_as_many_as_there_is_room_for",
    ),
    # More image content
    "R120": (_AWKWARD, "providers/test_oci_real.py::test_device_nodes_of_an_image_are_dead"),
    "R121": (
        _STORE + "test_several_gzip_members_are_one_layer",
        "engine/test_decode.py::test_one_compression_is_not_taken_for_the_other",
    ),
    "R122": (_AWKWARD, _SOURCES + "test_each_awkward_image_has_its_reason"),
    "R123": (
        "engine/test_rootfs.py::test_as_many_layers_as_an_image_may_have",
        "engine/test_huge.py::test_documents_as_large_as_real_ones_pass",
        "api/test_content.py::test_more_layers_than_can_be_mounted",
        "entrypoints/test_settings.py::test_bounds_count_where_images_are_read_and_where_they_are_unpacked",
    ),
    "R124": (_TABLE, _EXEC + "test_arguments_arrive_as_they_are"),
    "R126": (
        _AWKWARD,
        _STORE + "test_every_read_of_a_blob_is_a_verified_one",
        "engine/test_verify.py::test_damage_is_found_named_and_mended",
        "e2e/test_lost_bytes.py::test_bytes_lost_on_the_node_start_nothing",
    ),
}

LATER: dict[str, str] = {
    "R26": "the docker provider",
    "R62": "the docker provider",
    "R117": "the console",
}
