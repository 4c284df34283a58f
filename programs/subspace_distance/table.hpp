/// @file table.hpp  The rows of the study as a CSV file, and as a figure.
#pragma once

#include <map>

#include "study.hpp"

namespace study {

/// The first line of a table.
inline constexpr const char* header =
    "sweep,beta,tau,run,epoch,loss,perplexity,distance,smallest_angle,median_angle,largest_angle,turn,study";

/// Writes all rows, first under a temporary name.
void write_table(const std::string& path, const std::vector<Row>& rows);
/// Reads a table that write_table wrote. Throws DataError with the line for anything else.
std::vector<Row> read_table(const std::string& path);
/// Draws the distances of the last epochs against β and τ, averaged over runs, and their development.
void draw(const std::string& path, const std::vector<Row>& rows);
/// The last row of each training of a sweep: by the swept value, then by run.
std::map<double, std::map<ig::Index, Row>> last_rows(const std::vector<Row>& rows, const std::string& sweep);
/// The last row of each point, averaged over runs, in the order of the sweep and of the swept value.
std::vector<Row> averages(const std::vector<Row>& rows, const std::string& sweep);

}  // namespace study
