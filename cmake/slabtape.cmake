# SPDX-License-Identifier: MIT
# Targets and flags every module shares.  The repository root is the only include directory.

find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson>=2.14)
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3>=3.40)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd>=1.5)
pkg_check_modules(POPT REQUIRED IMPORTED_TARGET popt>=1.18)
find_package(Threads REQUIRED)

add_library(slabtape_flags INTERFACE)
target_include_directories(slabtape_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
	$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
target_compile_definitions(slabtape_flags INTERFACE _GNU_SOURCE
	SLABTAPE_VERSION="${PROJECT_VERSION}")
target_compile_options(slabtape_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
	-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith
	-Wwrite-strings -Wvla -Wundef -Wformat=2 -Wcast-qual -fno-common)
if(SLABTAPE_WERROR)
	target_compile_options(slabtape_flags INTERFACE -Werror)
endif()
if(SLABTAPE_SANITIZE)
	target_compile_options(slabtape_flags INTERFACE -fsanitize=${SLABTAPE_SANITIZE}
		-fno-omit-frame-pointer)
	target_link_options(slabtape_flags INTERFACE -fsanitize=${SLABTAPE_SANITIZE})
endif()

# slabtape_module(NAME [LIBS...]): every *.c directly in the module's folder becomes one static
# library st_NAME.  A new file joins by being there (docs/decisions/0002).
function(slabtape_module name)
	file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
	add_library(st_${name} STATIC ${sources})
	target_link_libraries(st_${name} PUBLIC slabtape_flags ${ARGN})
endfunction()
